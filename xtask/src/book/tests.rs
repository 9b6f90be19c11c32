use super::page::Page;
use super::*;

const SUMMARY_TEXT: &str = "# Summary\n\n[Guide](README.md)\n\n# Start\n\n- [First](a.md)\n";

fn parsed() -> Vec<Entry> {
    entries(SUMMARY_TEXT).unwrap()
}

#[test]
fn the_summary_has_parts_and_chapters_in_order() {
    let chapter =
        |title: &str, file: &str| Entry::Chapter { title: title.to_owned(), file: file.to_owned() };
    let expected =
        [chapter("Guide", "README.md"), Entry::Part("Start".to_owned()), chapter("First", "a.md")];
    assert_eq!(parsed(), expected);
    let error = entries("- First\n").unwrap_err().to_string();
    assert_eq!(error, "SUMMARY.md:1: \"- First\" is not a link: write - [Title](file.md)");
}

#[test]
fn a_page_that_the_summary_does_not_name_is_found() {
    let files = ["README.md", "a.md", "b.md"].map(str::to_owned).into();
    assert_eq!(unnamed(&parsed(), &files), ["b.md"]);
}

#[test]
fn the_summary_of_the_guide_names_every_page() {
    let guide = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(GUIDE);
    let entries = entries(&read(&guide.join(SUMMARY)).unwrap()).unwrap();
    let files = files(&guide).unwrap();
    assert_eq!(unnamed(&entries, &files), Vec::<String>::new());
    let lost = chapters(&entries).filter(|(_, file)| !files.contains(*file)).count();
    assert_eq!(lost, 0);
}

const PAGE: &str = "# Title\n\n<!-- site: -->\n```console\n$ loadstone site &\n```\n\n\
                    See [loads](loads.md#open-loads), [terms](../../GLOSSARY.md) and \
                    [rules](../design/a.md).\n\n## Options: `--rate`\n\n| a | b |\n|---|---|\n| x | y |\n";

#[test]
fn a_page_is_rendered_with_anchors_and_links_inside_the_book() {
    let page = Page::render(PAGE, "..");
    for expected in [
        "<h1 id=\"title\">Title</h1>",
        "<h2 id=\"options---rate\">Options: <code>--rate</code></h2>",
        "href=\"loads.html#open-loads\"",
        "href=\"../GLOSSARY.md\"",
        "href=\"../docs/design/a.md\"",
        "<td>x</td>",
    ] {
        assert!(page.html.contains(expected), "{expected} in {}", page.html);
    }
    assert!(!page.html.contains("<!--"), "{}", page.html);
}

#[test]
fn the_search_index_has_a_row_for_each_heading() {
    let page = Page::render(PAGE, "..");
    let rows: Vec<String> = page.sections.iter().map(|section| section.json("p.html")).collect();
    assert_eq!(
        rows,
        [
            "[\"p.html#title\",\"Title\",\"$ loadstone site & See loads , terms and rules .\"],\n",
            "[\"p.html#options---rate\",\"Options: --rate\",\"a b x y\"],\n",
        ]
    );
}

#[test]
fn a_page_links_its_neighbors_and_marks_itself() {
    let entries = parsed();
    let all: Vec<(&str, &str)> = chapters(&entries).collect();
    let html = layout("First", "a.md", &entries, "<p>x</p>", neighbors(&all, "a.md"));
    assert!(html.contains("<a href=\"a.html\" aria-current=\"page\">First</a>"), "{html}");
    assert!(html.contains("<a href=\"index.html\">← Guide</a>"), "{html}");
    assert!(!html.contains('→'), "{html}");
}
