"""Scripts and styles without what only their readers need."""

from __future__ import annotations

import pytest

from gnomon.reports.page.squeeze import squeezed_script, squeezed_style


@pytest.mark.parametrize(
    ("script", "short"),
    [
        ("const a = 1;  // one\n  return a;", "const a=1;\nreturn a;"),
        ("a + +b - -c / d", "a+ +b- -c/d"),
        ("x = a /* why */ + 'b  // c';", "x=a+'b  // c';"),
        ('say("a \\" b  c");', 'say("a \\" b  c");'),
        ("`a  ${ b ? `c  ${ {d: '}'} }` : 1 }  e` + f", "`a  ${ b ? `c  ${ {d: '}'} }` : 1 }  e`+f"),
        ("if (/^[/ ] ( a|b)$/i.test(x)) y = 1 / 2 / 3;", "if(/^[/ ] ( a|b)$/i.test(x))y=1/2/3;"),
        ("return /a  b/", "return/a  b/"),
        ("typeof x in of", "typeof x in of"),
        ("{\n  f(\n    a\n  )\n}\nb", "{f(a)}\nb"),
        ("f({\n  a,\n  b: c &&\n d\n})\ng()", "f({a,b:c&&d})\ng()"),
    ],
)
def test_scripts_mean_the_same(script, short):
    assert squeezed_script(script) == short
    assert squeezed_script(short) == short


def test_what_can_not_be_read_is_said():
    with pytest.raises(ValueError, match="can't be read"):
        squeezed_script("a = 'no end")


def test_styles_mean_the_same():
    style = "/* why */ a b > c:hover, d { color: red; margin: 0 -1px calc(1px + 2px); }\n"
    style += "@media (x: 1) and (y) { e { f: g } }"
    assert squeezed_style(style) == (
        "a b > c:hover,d{color:red;margin:0 -1px calc(1px + 2px)}@media (x: 1) and (y){e{f:g}}"
    )
