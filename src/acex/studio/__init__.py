"""The studio: web pages for exploring "what if". It calls the library as users do, and sends nothing unconfirmed.

workspace        the explainer, the rows to pick from, and the Python code that creates both
request_parsing  rows and options: from requests to the arguments of `Explainer.search`, and back
serializers      explanations as JSON for pages
worker_pool      long-running jobs and the processes that run them
searches         the state of searches that pages follow; batches: explanations of the ledger as a table
exports          documents and Python code to download
security         which requests are accepted; server: HTTP with limits; app: the routes; demo: data and a model to try
"""
