//! The list of test programs: a line each of name, directory, executable and arguments, with tabs
//! between.

use std::path::Path;

use crate::program::Program;

/// Programs of the list whose name contains one of `filters`; all without filters.
///
/// # Errors
/// A list that cannot be read; a line without executable; no program at all.
pub fn read(list: &Path, filters: &[String]) -> Result<Vec<Program>, String> {
    let text = std::fs::read_to_string(list).map_err(|e| format!("{}: {e}", list.display()))?;
    let programs = text.lines().map(program).collect::<Result<Vec<_>, _>>()?;
    let wanted = |program: &Program| {
        filters.is_empty() || filters.iter().any(|filter| program.name.contains(filter))
    };
    let programs: Vec<_> = programs.into_iter().filter(wanted).collect();
    if programs.is_empty() {
        Err(format!("{}: no such test program", list.display()))
    } else {
        Ok(programs)
    }
}

fn program(line: &str) -> Result<Program, String> {
    let mut words = line.split('\t').map(str::to_owned);
    let (Some(name), Some(directory), Some(executable)) =
        (words.next(), words.next(), words.next())
    else {
        return Err(format!("not a name, a directory and an executable: {line}"));
    };
    Ok(Program {
        name,
        directory: directory.into(),
        executable,
        arguments: words.collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_filtered() {
        let directory = tempfile::tempdir().unwrap();
        let list = directory.path().join("list");
        std::fs::write(&list, "a/x\t/d\t/e\nb/y\t/d\t/f\tloom\n").unwrap();
        let names = |filters: &[&str]| {
            let filters: Vec<String> = filters.iter().map(|&word| word.to_owned()).collect();
            let programs = read(&list, &filters)?;
            Ok::<_, String>(programs.into_iter().map(|p| p.name).collect::<Vec<_>>())
        };
        assert_eq!(names(&[]).unwrap(), ["a/x", "b/y"]);
        assert_eq!(names(&["b/"]).unwrap(), ["b/y"]);
        assert_eq!(names(&["b/", "x"]).unwrap(), ["a/x", "b/y"]);
        assert!(names(&["z"]).is_err());
        std::fs::write(&list, "a/x\t/d\n").unwrap();
        assert!(names(&[]).is_err());
    }
}
