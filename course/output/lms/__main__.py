"""python -m course.output.lms, after python -m course.build."""

from course.output.lms.package import main

if __name__ == "__main__":
    main()
