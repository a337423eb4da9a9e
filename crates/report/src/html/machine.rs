//! The section about the machine, the ports and the generator.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::escape;
use crate::Conditions;
use crate::model::{Ceiling, LabResult, Machine};

/// The machine table, the ports' modes and the generator's ceiling.
pub(super) fn section(result: &LabResult) -> String {
    let (title, caption) = if result.is_from_outside() {
        (
            "The load tester's machine",
            "Where and how it was measured; nothing is known of the device's machine",
        )
    } else {
        ("Machine", "Where and how it was measured")
    };
    let mut out = format!(
        "<section id=\"machine\">\n<h2>{title}</h2>\n<div class=\"wide\"><table>\n<caption>{caption}</caption>\n<tbody>\n",
    );
    for (name, value) in facts(result) {
        if !value.is_empty() {
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{name}</th><td>{value}</td></tr>"
            );
        }
    }
    out.push_str("</tbody></table></div>\n");
    for note in &result.machine.notes {
        let _ = writeln!(out, "<p>{}</p>", escape(note));
    }
    out.push_str(&ports(&result.machine));
    out.push_str(&generator(result));
    out.push_str("</section>\n");
    out
}

/// Names and values, as HTML; the value of an unknown fact is empty.
fn facts(result: &LabResult) -> [(&'static str, String); 16] {
    let m = &result.machine;
    let known = |known: bool, text: String| if known { text } else { String::new() };
    let gib = m.memory_bytes as f64 / (1u64 << 30) as f64;
    let distance = m.round_trip_ns.map_or(String::new(), |(low, high)| {
        format!("{low:.0} to {high:.0} ns for a cache line's round trip")
    });
    let steal = format!(
        "{:.1} % of the processor time was taken by the hypervisor",
        m.steal_percent
    );
    let methods: BTreeSet<&str> = result.runs.iter().map(|r| r.cpu_method.as_str()).collect();
    let methods = methods.into_iter().filter(|m| !m.is_empty()).map(escape);
    let versions = m
        .versions
        .iter()
        .map(|(name, version)| escape(&format!("{name} {version}")));
    let conditions = || result.runs.iter().filter_map(|run| run.conditions.as_ref());
    let governors: BTreeSet<&str> = conditions().map(|c| c.governor.as_str()).collect();
    let governors = governors.into_iter().filter(|g| !g.is_empty()).map(escape);
    let command = format!("<code>{}</code>", escape(&m.command));
    [
        ("machine", escape(&m.product)),
        (
            "processor",
            format!("{} ({} online)", escape(&m.cpu), m.cpus),
        ),
        ("memory", known(m.memory_bytes > 0, format!("{gib:.1} GiB"))),
        ("system", escape(&m.os)),
        ("kernel", escape(&m.kernel)),
        ("processors' distance", distance),
        // Of older tests of a device from outside it is not known.
        (
            "steal",
            known(
                !result.is_from_outside() || conditions().next().is_some(),
                steal,
            ),
        ),
        ("an addition&#39;s TSC cycles", escape(&speed(conditions()))),
        ("packets not sent", unsent(conditions())),
        (
            "frequency governor",
            governors.collect::<Vec<_>>().join(", "),
        ),
        (
            "processor time of a device",
            methods.collect::<Vec<_>>().join("<br>"),
        ),
        ("energy of the whole machine", escape(&m.energy)),
        ("versions", versions.collect::<Vec<_>>().join(", ")),
        ("command", known(!m.command.is_empty(), command)),
        ("start", escape(&m.started)),
        (
            "duration",
            known(m.seconds > 0.0, format!("{:.0} s", m.seconds)),
        ),
    ]
}

/// The processor's speed over all runs; empty if nobody looked at it.
fn speed<'a>(conditions: impl Iterator<Item = &'a Conditions>) -> String {
    let seen = conditions.filter_map(|c| c.cycles_per_add);
    let seen: Vec<f64> = seen.flat_map(|(before, after)| [before, after]).collect();
    let least = seen.iter().copied().fold(f64::INFINITY, f64::min);
    let most = seen.iter().copied().fold(0.0, f64::max);
    match seen.is_empty() {
        true => String::new(),
        false => {
            format!("{least:.2} to {most:.2}: the processor's speed before and after each run")
        }
    }
}

/// Packets of all runs that the generator did not send; empty if nothing was due.
fn unsent<'a>(conditions: impl Iterator<Item = &'a Conditions>) -> String {
    let unsent: Vec<u64> = conditions.filter_map(|c| c.unsent).collect();
    match unsent.is_empty() {
        true => String::new(),
        false => format!("{} of all runs", unsent.iter().sum::<u64>()),
    }
}

fn ports(machine: &Machine) -> String {
    if machine.ports.is_empty() {
        return String::new();
    }
    let mut out = String::from(
        "<div class=\"wide\"><table>\n<caption>Ports and the modes they ran in</caption>\n<thead><tr><th scope=\"col\">used by</th>\
         <th scope=\"col\">port</th><th scope=\"col\">driver</th><th scope=\"col\">mode</th></tr></thead>\n<tbody>\n",
    );
    for port in &machine.ports {
        let [user, name, driver, mode] =
            [&port.user, &port.name, &port.driver, &port.mode].map(|t| escape(t));
        let _ = writeln!(
            out,
            "<tr><th scope=\"row\">{user}</th><td>{name}</td><td>{driver}</td><td>{mode}</td></tr>"
        );
    }
    out.push_str("</tbody></table></div>\n");
    out
}

fn generator(result: &LabResult) -> String {
    let generator = &result.generator;
    if generator.ceiling_pps <= 0.0 {
        return String::new();
    }
    let mut out = format!(
        "<h3>The generator by itself</h3>\n<p>Without a device, generator and counter reach {:.2} Mpps; no result can be above that. {}</p>\n",
        generator.ceiling_pps / 1e6,
        escape(&generator.method)
    );
    if !generator.ceilings.is_empty() {
        out.push_str(
            "<div class=\"wide\"><table>\n<caption>Ceiling of the generator by kind of port</caption>\n<thead><tr><th scope=\"col\">I/O</th>\
             <th scope=\"col\">sent by</th><th scope=\"col\">size</th><th scope=\"col\" class=\"n\">Mpps</th></tr></thead>\n<tbody>\n",
        );
        for ceiling in &generator.ceilings {
            let Ceiling {
                io,
                sender,
                size,
                pps,
            } = ceiling;
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{io}</th><td>{sender}</td><td>{size}</td><td class=\"n\">{:.3}</td></tr>",
                pps / 1e6
            );
        }
        out.push_str("</tbody></table></div>\n");
    }
    out
}
