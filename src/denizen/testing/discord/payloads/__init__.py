"""Records as the JSON objects of Discord's API v10, for REST answers and gateway events alike."""
