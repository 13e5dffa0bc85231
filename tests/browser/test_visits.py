"""A window's tab goes from one test to the next, with nothing of the one before."""

from tests.browser.conftest import Visit

KEPT = "() => [Object.keys(localStorage).filter(key => key.startsWith('course')).sort(), Object.keys(sessionStorage).includes('mine')]"


def test_a_tab_that_is_kept_holds_nothing_of_who_had_it(browser, static):
    window = Visit(browser, figures=[])
    page = window.go(f"{static}memory_stack/")
    assert page.locator("figure.widget").count() == 0
    page.evaluate("() => { localStorage['course.mine'] = '1'; sessionStorage.mine = '1'; }")
    assert page.evaluate(KEPT) == [["course.mine", "course.predict"], True]
    window.leave()
    assert window.page is page and page.url == "about:blank"
    window.start(predictions=True)
    window.go(f"{static}memory_stack/")
    assert page.evaluate(KEPT) == [[], False] and page.locator("figure.widget").count() == 1
    window.own.close()


def test_a_tab_to_which_a_test_did_what_lasts_is_closed(browser, static):
    window = Visit(browser)
    for does in (
        lambda page: page.set_viewport_size({"width": 390, "height": 800}),
        lambda page: page.add_init_script("window.mine = true"),
        lambda page: page.route("**/*", lambda route: route.continue_()),
        lambda page: page.emulate_media(color_scheme="dark"),
    ):
        does(window.go(f"{static}about/"))
        marked = window.page
        window.leave()
        assert marked.is_closed() and window.page is None
        window.start()
    window.own.close()
