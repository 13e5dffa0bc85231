"""python -m course.lms, after python -m course.build."""

from course.lms.package import main

if __name__ == "__main__":
    main()
