"""The archive at work: posts are mirrored, fetched from the past, forgotten, and looked up.

    mirror      what arrives on a platform is kept, unless somebody opted out
    backfill    what was written before Denizen came is fetched in the background
    retention   what is too old goes
    withholding what was made of it and published is withheld at once, until it is made anew
    privacy     what people ask to have forgotten goes, and does not come back
    reader      a channel that everybody may read becomes a source of knowledge
    lookup      what agents may find, limited to what everybody who reads the answer may see

The rows are in `ports/archive`; what is kept is decided in `domain/archiving`.
"""
