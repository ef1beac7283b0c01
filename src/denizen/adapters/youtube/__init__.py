"""YouTube channels as sources: the list of videos by the Data API, what is said in them by their transcripts."""

from denizen.adapters.youtube.reader import OpenFetcher, YoutubeReader

__all__ = ["OpenFetcher", "YoutubeReader"]
