"""Web sites as sources, by the sitemaps that they publish."""

from denizen.adapters.sitemap.reader import SitemapReader

__all__ = ["SitemapReader"]
