"""The pages for people. Each page is a record, which its template gets as `page`, and nothing else.

Templates are in `../templates`, scripts and styles in `../static`.
"""
