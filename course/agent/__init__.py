"""The engine for programs that use tools: ``system-ml mcp`` answers over the Model Context Protocol, on
standard input and output.

    tools.py      what may be asked: the engine's commands, typed as their flags are, and a search of lessons
    apart.py      a process of its own that answers, so that an answer that takes too long can be given up
    rpc.py        the protocol: messages as lines of JSON, one call at a time
    passages.py   the lessons' sections, and which of them speak of a question

A call reads nothing but its arguments, the catalogue and the built course, writes no file, starts no program
and opens no connection (tests/course/test_agent.py watches the interpreter's own record of that).
"""
