"""What somebody is about to launch: texts in, what they set out, and whether it fits.

A launch script, a configuration file or several of them are read as they are; nothing is run, and nothing is
sent anywhere. The work is in four steps, each with a module or a few:

1.  ``texts`` takes what was pasted apart into sources and refuses what is no text. In which of four notations
    each is written is seen from its lines, and ``shell``, ``toml``, ``json`` and ``yaml`` turn it
    into a flat list of entries: key, value as text, file, line, place in the text.
2.  ``reading`` asks the frameworks whose entries these are; each is a module of ``engine.frameworks``, with a
    table from its keys to ours, its defaults and its errors.
3.  A ``Launch`` holds the result: a model, a job and a layout of the engine, and what was read, assumed and
    ignored, by line.
4.  ``verdict`` estimates it, ``changes`` looks at its neighbours, each of which is an edited text that is
    read again, and ``shown`` prints all of it.

For a page without a server the second and third step are tables and arithmetic, which the course's compiler
takes; the first is text, which it does not. So the four readers of step 1 use no library (not tomllib, json,
re or a YAML parser): each goes through the text once, character by character or line by line, with a list as
its stack, and gives the same flat entries. They are meant to get a twin of a few hundred lines in JavaScript,
held equal by feeding both the same texts, while everything behind the entries is compiled from here.
"""
