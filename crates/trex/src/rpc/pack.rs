//! Compression: a magic number, the length of what is packed, zlib data.

use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::decompress_to_vec_zlib_with_limit;

use super::Refusal;

const MAGIC: [u8; 4] = 0xABE8_5CEA_u32.to_be_bytes();
/// Fast rather than small: most answers stay on this machine.
const LEVEL: u8 = 1;

/// What is packed in a message; None if it is not packed. No more than `most` bytes are ever
/// unpacked.
pub fn unpack(message: &[u8], most: usize) -> Result<Option<Vec<u8>>, Refusal> {
    let Some((announced, packed)) = message
        .strip_prefix(&MAGIC)
        .and_then(|rest| rest.split_first_chunk())
    else {
        return Ok(None);
    };
    let announced = usize::try_from(u32::from_be_bytes(*announced)).unwrap_or(usize::MAX);
    if announced > most {
        return Err(Refusal::too_large(most));
    }
    let wrong = || Refusal::Parse("what is compressed is damaged".to_owned());
    let unpacked = decompress_to_vec_zlib_with_limit(packed, announced).map_err(|_| wrong())?;
    match unpacked.len() == announced {
        true => Ok(Some(unpacked)),
        false => Err(wrong()),
    }
}

/// Packs a message.
pub fn pack(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    let packed = compress_to_vec_zlib(bytes, LEVEL);
    [&MAGIC, &length.to_be_bytes(), &packed[..]].concat()
}
