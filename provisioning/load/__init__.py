"""The load engine: many respondents in one process, at a few µs each.

`engine` moves bytes over kept connections, `respondent` knows what a person
asks and what the answers must look like, `crowd` lets people take turns,
`schedule` says when, `tally` counts, `driver` does all that in processes of
its own. An HTTP library would cost as much as the server that is to be
measured, and it would hide when a request was due.

Standard library only. It talks to loopback and unix sockets only.
"""
