"""Other sites with whose accounts people sign in: GitHub and Discord, by OAuth with PKCE."""

from denizen.adapters.sign_in.oauth import DISCORD, DISCORD_NAME, GITHUB, GITHUB_NAME, OAuthApplication, OAuthSite

__all__ = ["DISCORD", "DISCORD_NAME", "GITHUB", "GITHUB_NAME", "OAuthApplication", "OAuthSite"]
