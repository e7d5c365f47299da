// An object of a store such as S3 that refuses late writers, by conditional puts. The token is part
// of the object: an ETag may be a hash, and two writes of one text would have the same.

/**
 * Writes a text with the token of the lock under which it was made. False, and nothing is written,
 * if a later holder has written the object.
 *
 * @param url     of the object
 * @param options.headers  such as the signature of the request
 * @param options.fetch    sends the requests
 */
export async function putFenced(url, text, token, { headers = {}, fetch = globalThis.fetch } = {}) {
  for (;;) {
    const found = await fetch(url, { headers });
    if (!found.ok && found.status !== 404) throw new Error(`the store answers a get of '${url}' with ${found.status}`);
    const [last] = (await found.text()).split('\n', 1);
    if (found.ok && token < Number(last)) return false;
    // The store compares and writes in one step, which is what a fence needs.
    const condition = found.ok ? { 'If-Match': found.headers.get('ETag') } : { 'If-None-Match': '*' };
    const put = { method: 'PUT', body: `${token}\n${text}`, headers: { ...headers, ...condition } };
    const { ok, status } = await fetch(url, put);
    if (ok) return true;
    // 412 and 409: another write came between, so it is read again.
    if (status !== 412 && status !== 409) throw new Error(`the store answers a put of '${url}' with ${status}`);
  }
}
