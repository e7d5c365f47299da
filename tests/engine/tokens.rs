//! Fencing tokens: they grow, and a manager can continue where another one ended.

use navlocks_core::{Answer, FencingToken, HashKey, LockManager, Request, TokenTooLarge};

fn granted_token(manager: &mut LockManager) -> u64 {
    let client = manager.add_client();
    let request = Request::exclusive("name");
    let (lock, answer) = manager.request(client, request).expect("a request is taken");
    assert!(manager.release(lock));
    let Answer::Granted(token) = answer else { panic!("not granted: {answer:?}") };
    token.get()
}

#[test]
fn manager_continues_tokens_of_an_earlier_one() {
    let mut manager = LockManager::new(HashKey::from_bytes([0; 16]));
    assert_eq!(granted_token(&mut manager), 1);
    manager.advance_token(FencingToken::new(100)).unwrap();
    assert_eq!(granted_token(&mut manager), 100);
    manager.advance_token(FencingToken::new(7)).unwrap();
    assert_eq!(granted_token(&mut manager), 101);
}

#[test]
fn token_too_large_to_start_from_is_refused() {
    let mut manager = LockManager::new(HashKey::from_bytes([0; 16]));
    let absurd = FencingToken::new(u64::MAX);
    let refused = manager.advance_token(absurd);
    assert_eq!(refused, Err(TokenTooLarge(absurd)));
    assert!(refused.unwrap_err().to_string().contains("too large to start from"));
    assert_eq!(granted_token(&mut manager), 1);
    manager.advance_token(FencingToken::START_MAX).unwrap();
    assert_eq!(granted_token(&mut manager), FencingToken::START_MAX.get());
}
