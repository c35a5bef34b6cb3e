//! Result files in, one self-contained HTML page out: no network, no server, no other file.
//!
//! `view` turns rows into what the page shows (text, ready to print, and series, ready to draw), the template lays it
//! out, and a small script draws the charts with uPlot, which is embedded (`assets/`). Without scripts the page still
//! has every figure: tables and bars are plain HTML.

mod view;

use esker_lab_core::schema::Run;
use esker_lab_core::{Error, Result};
use minijinja::value::Serde;
use minijinja::{Environment, Value, context};

const TEMPLATE: &str = include_str!("../assets/page.html");
const STYLE: &str = include_str!("../assets/page.css");
const SCRIPT: &str = include_str!("../assets/page.js");
const UPLOT: &str = include_str!("../assets/uPlot.iife.min.js");
const UPLOT_STYLE: &str = include_str!("../assets/uPlot.min.css");

/// The page for `runs`, the latest last. Fails only if a figure can't be written as JSON.
pub fn render(runs: &[Run]) -> Result<String> {
    let page = view::Page::new(runs);
    // In a script element only `</` and `<!` could end the JSON early.
    let json = serde_json::to_string(&page.charts)
        .map_err(|e| Error::usage(format!("a figure can't be shown: {e}")))?
        .replace('<', "\\u003c");
    let mut environment = Environment::new();
    environment.set_undefined_behavior(minijinja::UndefinedBehavior::Strict);
    environment
        .add_template("page.html", TEMPLATE)
        .and_then(|()| environment.get_template("page.html"))
        .and_then(|template| {
            template.render(context! {
                page => Value::from(Serde(&page)),
                charts => Value::from_safe_string(json),
                style => Value::from_safe_string(format!("{UPLOT_STYLE}\n{STYLE}")),
                uplot => Value::from_safe_string(UPLOT.to_owned()),
                script => Value::from_safe_string(SCRIPT.to_owned()),
            })
        })
        .map_err(|e| Error::usage(format!("the page's template: {e:#}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use esker_lab_core::schema::Row;

    #[test]
    fn text_from_results_is_escaped() {
        let row = Row {
            engine: "evil".into(),
            workload: "overwrite".into(),
            ops: 1,
            ops_per_s: 1.0,
            engine_stats: "<script>alert(1)</script>".into(),
            interval_rates: vec![1.0, 2.0, 3.0],
            interval_s: 1.0,
            variant: "</script><b>".into(),
            ..Row::default()
        };
        let page = render(&[Run {
            rows: vec![row],
            ..Run::default()
        }])
        .unwrap();
        assert!(!page.contains("<script>alert") && !page.contains("</script><b>"));
        assert!(page.contains("&lt;script&gt;alert"));
    }

    #[test]
    fn the_page_needs_nothing_else() {
        let page = render(&[Run::default()]).unwrap();
        for outside in ["src=\"http", "href=\"http", "@import", "url(http", "fetch("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }
}
