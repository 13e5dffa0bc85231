"""Packages of the course for a learning system, made by ``make lms`` from the built site: SCORM 2004 (4th
edition) and cmi5. Each lesson is a unit of its own, which reports predictions and exercises to the system
that launched it, and to nobody else; no server of ours takes part.

    build/system-ml-scorm2004.zip      package.py
    build/system-ml-cmi5.zip           manifests.py writes what stands in them: imsmanifest.xml, cmi5.xml
    report/                            the scripts that are added to the pages in a package, and only there
"""
