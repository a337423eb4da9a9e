//! The library that T-Rex's clients use speaks with the server.

mod client;
#[path = "client/rpc.rs"]
mod rpc;

use testbed::{Spawn, patience};

use client::LIMIT;
use rpc::server;

/// Asks, packed, a few times; subscribes, and has itself woken; asks once with a large request.
const SCRIPT: &str = r#"
import json, struct, sys, zlib
import zmq
context = zmq.Context()
asking, hearing = context.socket(zmq.REQ), context.socket(zmq.SUB)
for socket, port in (asking, sys.argv[1]), (hearing, sys.argv[2]):
    socket.setsockopt(zmq.RCVTIMEO, 20000)
    socket.setsockopt(zmq.LINGER, 0)
    socket.connect("tcp://127.0.0.1:" + port)
hearing.setsockopt(zmq.SUBSCRIBE, b"")

def ask(method, **params):
    request = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    request = json.dumps(request).encode()
    magic = struct.pack(">I", 0xABE85CEA)
    asking.send(magic + struct.pack(">I", len(request)) + zlib.compress(request))
    answer = asking.recv()
    assert answer[:4] == magic, answer
    answer = zlib.decompress(answer[8:])
    return json.loads(answer)["result"]

api = ask("api_sync_v2", name="STL", major=5, minor=1)["api_h"]
assert ask("get_system_info", api_h=api)["port_count"] == 2
woken = zmq.Poller()
woken.register(hearing, zmq.POLLIN)
for _ in range(200):
    ask("publish_now", api_h=api)
    if woken.poll(100):
        break
assert hearing.recv() == b"{}"
assert ask("get_async_events", api_h=api, session_id=1, padding="x" * 900000) == {"data": []}
print("done")
"#;

#[test]
fn a_real_library_speaks_with_it() {
    let test = "a_real_library_speaks_with_it";
    let python = |arguments: &[&str]| {
        Spawn::new("python3")
            .args(arguments)
            .output(patience(LIMIT))
    };
    if !python(&["-c", "import zmq"]).is_ok_and(|output| output.status.success()) {
        return testbed::skip(test, "needs python3 with pyzmq");
    }
    let (server, _pool) = server();
    let addresses = server.addresses();
    let [requests, events] = [addresses.requests, addresses.events].map(|a| a.port().to_string());
    let output = python(&["-c", SCRIPT, &requests, &events]).expect("it was there just now");
    assert_eq!(output.stdout, b"done\n", "{output:?}");
}
