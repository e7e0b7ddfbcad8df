"""The studio: a page where a person asks "what if". It drives the library as users do, and asks nothing by itself.

desk      what it is about: an explainer, the rows people pick from, and where these come from
wishes    from what a page says to what `Explainer` takes, and back
told      explanations in plain values, for pages
jobs      work that takes a while: one search, many rows; crew: the processes that do it
searches  searches as pages follow them; many: explanations of the ledger as a table
take      what a person takes along: letter, tables, the commands that give the same
guard     who may ask; app: the addresses; demo: something to look at
"""
