"""The voice server: a websocket of version 8 and RTP over UDP, encrypted as Discord does it, without DAVE."""
