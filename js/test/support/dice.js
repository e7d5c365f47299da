// Reproducible random numbers. Tests print the seed.

export class Dice {
  constructor(seed) {
    this.seed = seed;
    this.state = seed >>> 0;
  }

  /** Uses the seed of NAVLOCKS_SEED, or a new one. */
  static fromEnvironment() {
    const given = process.env.NAVLOCKS_SEED;
    return new Dice(given === undefined ? Math.floor(Math.random() * 2 ** 32) : Number(given));
  }

  /** Returns an integer from 0 to `limit` - 1. */
  roll(limit) {
    // Mulberry32's step.
    this.state = (this.state + 0x6d2b79f5) >>> 0;
    let mixed = this.state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit;
  }

  pick(list) {
    return list[this.roll(list.length)];
  }
}
