"""Speech: eSpeak NG and PocketSphinx, which run here, and servers with OpenAI's audio API. Implements `ports.speech`.

The packages of the extra `voice` are imported with the first word that is spoken or recognized.
"""

from denizen.adapters.speech.espeak import EspeakSynthesizer
from denizen.adapters.speech.pocketsphinx import PocketsphinxRecognizer
from denizen.adapters.speech.served import ServedRecognizer, ServedSynthesizer, SpeechEndpoint

__all__ = ["EspeakSynthesizer", "PocketsphinxRecognizer", "ServedRecognizer", "ServedSynthesizer", "SpeechEndpoint"]
