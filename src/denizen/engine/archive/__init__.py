"""The archive at work: posts are mirrored, fetched from the past, forgotten, and looked up.

    mirror          keeps what arrives, unless somebody opted out; withholds what was made of deleted posts
    backfill        fetches in the background what was written before Denizen came
    removal         deletes what people ask to have forgotten, and posts that are too old
    channel_source  makes a channel that everybody may read a source of knowledge
    post_embedding  makes embeddings of posts in the background
    view, lookup    find what everybody who reads the answer may see

The rows are in `ports/archive`; what is kept is decided in `domain/archiving`.
"""
