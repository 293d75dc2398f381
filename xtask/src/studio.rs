//! The studio: its types, and its stories in a real browser against the release binary.
//!
//! Packages are installed in the cache, once for each lock file; nothing is written into the clone. Without Node or a
//! browser the suite is skipped, aloud.

use std::fs;
use std::path::{Path, PathBuf};

use crate::shell::{Failed, Shell, cache_dir};
use crate::{ci, steps};

/// Names under which a Chromium may be installed.
const BROWSERS: &[&str] = &["chromium", "chromium-browser", "google-chrome"];
/// Vite needs what came with this version of Node.
const NODE: &str = "const [a, b] = process.versions.node.split('.').map(Number); process.exit(a > 20 || (a === 20 && b >= 19) ? 0 : 1)";

/// What is told in the browser, one server a file.
const STORIES: &[&str] = &[
    "tests/studio/stories.test.mjs",
    "tests/studio/job.test.mjs",
    "tests/studio/serving.test.mjs",
    "tests/studio/work.test.mjs",
    "tests/studio/lists.test.mjs",
    "tests/studio/faults.test.mjs",
    "tests/studio/security.test.mjs",
];

/// Types first, then the stories.
pub(crate) fn run(sh: &Shell) -> Result<(), Failed> {
    if !sh.succeeds("node", &["-e", NODE]) || !sh.succeeds("npm", &["--version"]) {
        return ci::skip("the studio in a browser (no Node.js 20.19 or newer with npm)");
    }
    types(sh)?;
    let Some(sh) = browsing(sh)? else {
        return ci::skip("the studio in a browser (no Chromium)");
    };
    STORIES.iter().try_for_each(|story| {
        let tell = || sh.run("node", &["--test", story]);
        // As with other suites, one that fails alone fails.
        tell().or_else(|_| {
            tell()?;
            ci::note(&format!("{story} failed once and passed then"))
        })
    })
}

/// Draws the pictures of the README and of the guide anew.
pub(crate) fn shot(sh: &Shell) -> Result<(), Failed> {
    let sh =
        browsing(sh)?.ok_or_else(|| Failed::Check("there is no Chromium; `cargo xtask setup` installs one".into()))?;
    sh.run("node", &["tests/studio/shot.mjs", "docs/studio.png", "docs/guides/studio.png"])
}

/// The shell with what the browser's scripts need, and the release binary built.
fn browsing(sh: &Shell) -> Result<Option<Shell>, Failed> {
    let found = BROWSERS.iter().find_map(|name| sh.output("sh", &["-c", &format!("command -v {name}")]));
    let Some(chromium) = found else { return Ok(None) };
    let packages = install(sh, &sh.root.join("tests/studio"), "studio-tests")?;
    let shots = sh.target().join("studio-shots");
    let sh = sh.with("STUDIO_CHROMIUM", chromium).with("STUDIO_PACKAGES", packages).with("STUDIO_SHOTS", shots);
    steps::with_binary(&sh).map(Some)
}

fn types(sh: &Shell) -> Result<(), Failed> {
    sh.run("node", &["studio/routes.mjs", "--check"])?;
    let studio = sh.root.join("studio");
    let packages = install(sh, &studio, "studio-types")?;
    let place = packages.to_string_lossy();
    // Types are looked for beside the sources, so the sources go to the packages.
    sh.quiet(
        "sh",
        &[
            "-c",
            &format!("rm -rf '{place}/src' && cp -r studio/src studio/tsconfig.json studio/vite.config.ts '{place}'"),
        ],
    )?;
    sh.run("node", &[&format!("{place}/node_modules/typescript/bin/tsc"), "--noEmit", "--project", &place])
}

/// Installs what a lock file names; the folder it lies in.
fn install(sh: &Shell, from: &Path, name: &str) -> Result<PathBuf, Failed> {
    let place = cache_dir().join("tools").join(name);
    let [manifest, lock] = ["package.json", "package-lock.json"];
    let wanted = fs::read(from.join(lock)).map_err(Failed::at(&from.join(lock)))?;
    if place.join("node_modules").is_dir() && fs::read(place.join(lock)).is_ok_and(|there| there == wanted) {
        return Ok(place);
    }
    let _none = fs::remove_dir_all(&place);
    fs::create_dir_all(&place).map_err(Failed::at(&place))?;
    for file in [manifest, lock] {
        fs::copy(from.join(file), place.join(file)).map_err(Failed::at(&place))?;
    }
    let flags = ["--no-save", "--ignore-scripts", "--no-audit", "--no-fund", "--prefer-offline", "--prefix"];
    let folder = place.to_string_lossy();
    let args = [&["install"], flags.as_slice(), &[&*folder]].concat();
    sh.run("npm", &args).inspect_err(|_| drop(fs::remove_dir_all(&place)))?;
    Ok(place)
}
