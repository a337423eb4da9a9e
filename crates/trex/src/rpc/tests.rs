use std::time::Duration;

use super::*;

/// Answers plain text. `echo` gives its parameters back, `large` a mebibyte, others are refused.
fn asked(request: &str) -> Value {
    let answer = answer(request.as_bytes(), later(), &mut call);
    serde_json::from_slice(&answer).unwrap()
}

fn call(method: &str, params: &Params) -> Result<Value, Refusal> {
    match method {
        "echo" => Ok(Value::Object(params.clone())),
        "large" => Ok("x".repeat(1 << 20).into()),
        other => Err(Refusal::NoMethod {
            method: other.to_owned(),
            instead: None,
        }),
    }
}

/// When no test is still running.
fn later() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

fn code(answer: &Value) -> i64 {
    answer["error"]["code"].as_i64().unwrap_or_default()
}

#[test]
fn a_request_has_an_answer() {
    let answer = asked(r#"{"jsonrpc":"2.0","id":"a7","method":"echo","params":{"x":1}}"#);
    assert_eq!(
        answer,
        json!({"jsonrpc": "2.0", "id": "a7", "result": {"x": 1}})
    );
    let alone = asked(r#"{"jsonrpc":"2.0","id":7,"method":"echo"}"#);
    assert_eq!(alone, json!({"jsonrpc": "2.0", "id": 7, "result": {}}));
    let refused = asked(r#"{"jsonrpc":"2.0","id":1,"method":"fly","params":{}}"#);
    assert_eq!(refused["error"]["message"], "Method not found");
    let why = refused["error"]["specific_err"].as_str().unwrap();
    assert!(why.contains("`fly`"), "{why}");
}

#[test]
fn requests_that_are_none_are_refused() {
    for (request, expected) in [
        ("", -32_700),
        ("{", -32_700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"echo"} x"#, -32_700),
        (&"[".repeat(100_000), -32_700),
        ("\u{0}\u{1}", -32_700),
        ("7", -32_600),
        ("[]", -32_600),
        ("[[]]", -32_600),
        ("{}", -32_600),
        (r#"{"id":1,"method":"echo"}"#, -32_600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"echo"}"#, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32_600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"echo","params":[1]}"#,
            -32_600,
        ),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ECHO"}"#, -32_601),
        (&" ".repeat(REQUEST + 1), -32_600),
    ] {
        let answer = asked(request);
        assert_eq!(code(&answer), expected, "{request:.40}: {answer}");
    }
    let answer = asked(r#"{"jsonrpc":"2.0","id":{"a":[]},"method":"echo"}"#);
    assert_eq!(answer["id"], Value::Null);
}

#[test]
fn batches_are_answered_in_order() {
    let request = |id| json!({"jsonrpc": "2.0", "id": id, "method": "echo", "params": {"n": id}});
    let answers = asked(&json!([request(1), 7, request(2)]).to_string());
    assert_eq!(answers[0]["result"]["n"], 1);
    assert_eq!(code(&answers[1]), -32_600);
    assert_eq!(answers[2]["result"]["n"], 2);
    let one = asked(&json!([request(1)]).to_string());
    assert_eq!(one["result"]["n"], 1, "not in a list");
}

#[test]
fn an_answer_has_a_largest_size() {
    let request = json!({"jsonrpc": "2.0", "id": 5, "method": "large"});
    let many = Value::Array(vec![request; 5000]).to_string();
    assert!(many.len() < REQUEST);
    let answer = answer(many.as_bytes(), later(), &mut call);
    assert!(answer.len() < ANSWER + (4 << 20), "{}", answer.len());
    let answers: Vec<Value> = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answers.len(), 5000);
    assert_eq!((code(&answers[0]), code(&answers[4999])), (0, -32_000));
    assert_eq!(answers[4999]["id"], 5);
}

#[test]
fn what_is_asked_packed_is_answered_packed() {
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"echo","params":{"x":"yyyyyyyyyyyy"}}"#;
    let answer = answer(&pack::pack(request), later(), &mut call);
    let answer = pack::unpack(&answer, REQUEST).unwrap().unwrap();
    let answer: Value = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answer["result"]["x"], "yyyyyyyyyyyy");
}

#[test]
fn bombs_and_lies_are_refused() {
    let packed = |announced: u32, bytes: &[u8]| {
        let mut packed = pack::pack(bytes);
        packed[4..8].copy_from_slice(&announced.to_be_bytes());
        packed
    };
    let bomb = vec![b' '; 100 << 20];
    let request = br#"{"jsonrpc":"2.0","id":1,"method":"echo"}"#;
    let whole = packed(40, request);
    for (message, expected) in [
        (whole.clone(), 0),
        (packed(u32::MAX, &bomb), -32_600),
        (packed(1_000_000, request), -32_600),
        (packed(999_999, &bomb), -32_700),
        (packed(0, &bomb), -32_700),
        (packed(39, request), -32_700),
        (packed(41, request), -32_700),
        (whole[..whole.len() - 5].to_vec(), -32_700),
        (whole[..8].to_vec(), -32_700),
        (whole[..7].to_vec(), -32_700),
    ] {
        let answered = answer(&message, later(), &mut call);
        let answered = match pack::unpack(&answered, REQUEST) {
            Ok(Some(unpacked)) => unpacked,
            _ => answered,
        };
        let answered: Value = serde_json::from_slice(&answered).unwrap();
        assert_eq!(code(&answered), expected, "{:x?}", &message[..7]);
    }
}

#[test]
fn a_batch_has_its_time() {
    let request = json!({"jsonrpc": "2.0", "id": 5, "method": "echo"});
    let many = Value::Array(vec![request; 3]).to_string();
    let mut calls = 0;
    let answer = answer(many.as_bytes(), Instant::now(), &mut |_, _| {
        calls += 1;
        Ok(Value::Null)
    });
    let answers: Vec<Value> = serde_json::from_slice(&answer).unwrap();
    assert_eq!(answers.iter().map(code).collect::<Vec<_>>(), [-32_000; 3]);
    assert_eq!(calls, 0);
}
