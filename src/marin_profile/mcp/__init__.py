"""Captures below folders, served to agents over MCP: listed, asked, compared; never changed.

Contract
* Nothing is run, written (but the user's cache of summaries), published or fetched. What a client
  names lies below a root, wherever links lead, or is refused.
* Every result fits into `pages.MOST_CHARACTERS`, and a cursor goes on; an error is one sentence.
* `roots`: which captures there are; `summaries`: their summaries; `tools`: what can be asked;
  `pages`: how much of an answer is told at once; `server`: the protocol, and the only importer of
  its SDK.
"""
