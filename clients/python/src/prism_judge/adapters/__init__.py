"""Where other programs meet the judge: one file for each host, with the names and types that the host asks for.

A file imports its host when it is imported itself, never before: ``import prism_judge`` needs none of them. What hosts
share is in the files that begin with an underscore: texts out of messages (``_texts``), settings (``_settings``),
batches of completions (``_batch``) and guardrails (``_guard``). Nothing here judges, retries or talks to the network:
that is the client's.

``docs/trainers.md``, ``docs/guardrail-hosts.md`` and ``docs/evaluation-hosts.md`` show how each is used, and name the
hosts that need no Python because they speak HTTP.
"""
