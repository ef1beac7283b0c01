"""REST v10 on aiohttp: routes by resource, checks of bodies, rate limits, the log of requests."""
