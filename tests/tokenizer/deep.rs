//! Templates that nest deep, in the source or in what they build: on a small stack each renders or ends with an error by name, and the
//! next conversation is rendered as ever.

use sluice::error::ErrorKind;

use crate::chat::rendered;

/// Bytes of stack: a third of what a browser's worker has at least.
const STACK: usize = 300 << 10;

#[test]
fn what_is_nested_deep_is_refused_and_takes_no_stack() {
    for levels in [100, 2_000, 30_000] {
        for (name, template) in nested(levels).into_iter().chain(grown(levels)) {
            let found = on_small_stack(template);
            // What has no end has an error; the rest may as well render.
            let Err((kind, message)) = found else { continue };
            assert_eq!(kind, ErrorKind::InvalidOption, "{name}, {levels}: {message}");
            assert!(message.contains("option 'template'"), "{name}, {levels}: {message}");
        }
    }
    for (name, template) in endless() {
        assert!(on_small_stack(template.to_owned()).is_err(), "{name}");
    }
    let found = rendered("{{ messages[0].content }}", &[("user", "hi")]).expect("works on");
    assert_eq!(found.text, "hi");
}

#[test]
fn what_is_too_deep_is_said() {
    for (name, template) in nested(2_000) {
        let (_, message) = on_small_stack(template).expect_err(name);
        assert!(message.contains("too deeply") || name == "comment", "{name}: {message}");
    }
}

#[test]
fn what_is_nested_a_little_renders() {
    for (name, template) in nested(15).into_iter().chain(grown(15)) {
        if let Err((_, message)) = on_small_stack(template) {
            assert!(!message.contains("too deeply"), "{name}: {message}");
        }
    }
    let kept = "{% set x = messages[0:] %}{% set y = {'a': x | map(attribute='role')} %}{% set ns = namespace(l=[]) %}\
        {% for m in x %}{% set ns.l = ns.l + [m.content] %}{% endfor %}{{ y.a | join }}{{ x | length }}{{ ns.l | join }}";
    let found = rendered(kept, &[("user", "hi"), ("assistant", "ho")]).expect("renders");
    assert_eq!(
        found.text, "userassistant2hiho",
        "lists that are made late are made when they are kept"
    );
}

/// Rendered on a small stack: the length of the text, or the error's kind and message.
fn on_small_stack(template: String) -> Result<usize, (ErrorKind, String)> {
    let render = move || {
        let found = rendered(&template, &[("user", "hi")]);
        found.map(|found| found.text.len()).map_err(|e| (e.kind(), e.message().to_owned()))
    };
    let thread = std::thread::Builder::new().stack_size(STACK).spawn(render).expect("a thread");
    thread.join().expect("ends")
}

/// Expressions and blocks `levels` deep, chains included.
fn nested(levels: usize) -> Vec<(&'static str, String)> {
    let brackets = [
        ("list", "[", "]"),
        ("parentheses", "(", ")"),
        ("mapping", "{'a': ", "}"),
        ("tuple", "(1, ", ")"),
        ("list without end", "[", ""),
        ("index", "a[", "]"),
        ("call", "f(", ")"),
        ("argument", "1|default(", ")"),
        ("not", "not ", ""),
        ("minus", "-", ""),
    ];
    let chains = [
        "1 + 1",
        "1 ~ 1",
        "1 * 1",
        "1 ** 1",
        "1 and 1",
        "0 or 0",
        "1 == 1",
        "1 is defined",
        "x|upper",
        "x|default('')",
        "x.a",
        "x.strip()",
        "x[0]",
        "x[0:]",
        "1 if 1 else 1",
        "1 not in 1",
    ];
    let blocks = [
        ("if", "if 1", "endif"),
        ("for", "for x in [1]", "endfor"),
        ("set", "set x", "endset"),
        ("filter", "filter upper", "endfilter"),
        ("macro", "macro m()", "endmacro"),
        ("with", "with a=1", "endwith"),
        ("call", "call f()", "endcall"),
        ("generation", "generation", "endgeneration"),
    ];
    let deep = brackets.map(|(name, open, close)| {
        (name, format!("{{{{ {}1{} }}}}", open.repeat(levels), close.repeat(levels)))
    });
    let long =
        chains.map(|link| (link, format!("{{{{ {}{} }}}}", &link[..1], link[1..].repeat(levels))));
    let tags = blocks.map(|(name, open, close)| {
        let repeated = |tag: &str| format!("{{% {tag} %}}").repeat(levels);
        (name, format!("{}x{}", repeated(open), repeated(close)))
    });
    let elif = format!("{{% if 0 %}}{}{{% endif %}}", "{% elif 0 %}".repeat(levels));
    deep.into_iter().chain(long).chain(tags).chain([("elif", elif)]).collect()
}

/// Values that grow a level with each turn of a loop, and what walks through them.
fn grown(levels: usize) -> Vec<(&'static str, String)> {
    let steps = [
        ("[ns.a]", "1"),
        ("{'a': ns.a}", "1"),
        ("[ns.a]", "ns.a"),
        ("[ns.a]", "ns.a | tojson"),
        ("[ns.a]", "[ns.a] == [ns.a]"),
        ("[ns.a]", "ns.a < [ns.a]"),
        ("[ns.a]", "[ns.a, ns.a] | sort | length"),
        ("[ns.a]", "[ns.a, ns.a] | unique | length"),
        ("[ns.a]", "{ns.a: 1} | length"),
        ("[ns.a]", "ns.a | pprint"),
        ("ns.a | map('upper')", "ns.a | list"),
        ("[ns.a | map(attribute='x')]", "1"),
        ("ns.a[0:]", "ns.a | length"),
        ("dict(a=ns.a)", "ns.a"),
        ("{'a': ns.a}.items()", "ns.a"),
        ("namespace(b=ns.a)", "ns.a"),
        ("ns.a | reverse", "ns.a | length"),
        ("ns.a + [1]", "ns.a"),
    ];
    let template = |(step, shown)| {
        (
            step,
            format!(
                "{{% set ns = namespace(a=[]) %}}{{% for i in range({levels}) %}}{{% set ns.a = {step} %}}{{% endfor %}}{{{{ {shown} }}}}"
            ),
        )
    };
    let straight = format!("{{% set a = [] %}}{}", "{% set a = [a] %}".repeat(levels));
    let closures = "{% macro m() %}{{ x }}{% endmacro %}{% set x = m %}".repeat(levels);
    let more = [("one after the other", straight), ("closures", closures)];
    steps.into_iter().map(template).chain(more).collect()
}

/// What calls or holds itself.
fn endless() -> [(&'static str, &'static str); 8] {
    [
        ("macro", "{% macro m(n) %}{{ m(n + 1) }}{% endmacro %}{{ m(0) }}"),
        ("argument", "{% macro m(a) %}{{ m([[[[[[[[a]]]]]]]]) }}{% endmacro %}{{ m(0) }}"),
        ("call", "{% macro m() %}{% call m() %}{% endcall %}{% endmacro %}{{ m() }}"),
        ("loop", "{% for x in [1] recursive %}{{ loop([1]) }}{% endfor %}"),
        ("namespace", "{% set ns = namespace(a=1) %}{% set ns.a = ns %}{{ ns }}"),
        ("in a list", "{% set ns = namespace(a=1) %}{% set ns.a = [ns] %}{{ ns ~ '' }}"),
        ("by name", "{% set ns = namespace(a=1) %}{% set x = [ns] %}{% set ns.a = x %}{{ ns }}"),
        (
            "loop in itself",
            "{% set ns = namespace(a=1) %}{% for i in [ns] %}{% set ns.a = loop %}{% endfor %}",
        ),
    ]
}
