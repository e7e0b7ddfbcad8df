"""The studio: pages on which a person asks "what if". It calls the library as users do, and nothing is sent unasked.

workspace        what it is about: an explainer, the rows to pick from, and the code that leads to both
request_parsing  rows and options, from requests to the arguments of `Explainer.search` and back
serializers      explanations as JSON for pages
worker_pool      work that takes a while, and the processes that do it
searches         searches as pages follow them; batches: explanations of the ledger as a table
exports          code that gives the same explanation
security         which requests are answered; server: HTTP with limits; app: the routes; demo: data and a model to try
"""
