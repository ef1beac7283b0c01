"""Other sites with whose accounts people sign in: GitHub and Discord, by OAuth with PKCE."""

from denizen.adapters.sign_in.oauth import DISCORD, GITHUB, OAuthApplication, OAuthSite

__all__ = ["DISCORD", "GITHUB", "OAuthApplication", "OAuthSite"]
