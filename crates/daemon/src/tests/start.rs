//! The start.

use super::*;

/// The messages between daemon and kernel that it takes to start with so many interfaces of a kind;
/// their names begin with `name`.
fn messages(count: usize, name: &str) -> usize {
    let numbers = 0..count;
    let interface = |i| format!("{name}{i}: {{ addresses: [ 10.0.{i}.1/24 ] }}");
    let interfaces: Vec<String> = numbers.clone().map(interface).collect();
    let interfaces = interfaces.join(", ");
    let text = match name {
        "loop" => format!("loopbacks: {{ {interfaces} }}"),
        "null" => {
            let port = |i| format!("null{i}: {{ null: {{}} }}");
            let ports: Vec<String> = numbers.clone().map(port).collect();
            format!(
                "interfaces: {{ {interfaces} }}\nports: {{ {} }}",
                ports.join(", ")
            )
        }
        _ => format!("interfaces: {{ {interfaces} }}"),
    };
    let config = Config::parse("test.yaml", &text).expect("valid");
    let devices: Vec<String> = numbers.map(|i| format!("e{i}")).collect();
    let devices: Vec<&str> = devices.iter().map(String::as_str).collect();
    Lab::start(&devices, config).machine.messages()
}

/// Twice the interfaces take twice the messages: no interface asks for what concerns the others.
#[test]
fn a_start_takes_as_many_messages_for_each_interface_however_many_there_are() {
    for name in ["loop", "null", "e"] {
        let [few, many] = [15, 30].map(|count| messages(count, name));
        assert!(many < few * 5 / 2, "{name}: {few}, then {many}");
    }
}
