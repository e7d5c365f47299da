// The layout of the array that a client shares with the engine, as in native/src/mail.rs: the
// number of the request that a call is about, then the answer: amount of mail, whether there is
// more, mail.

export const NUMBER = 0;
export const COUNT = 1;
export const MORE = 2;
export const MAIL = 3;
/** The numbers of a piece of mail: its kind, the number of its request, and a token or a cause. */
export const MAIL_LENGTH = 3;

/** Returns an array with room for so much mail. */
export function createArray(mail) {
  return new Float64Array(MAIL + mail * MAIL_LENGTH);
}
