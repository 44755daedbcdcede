// Loaded before a node of the chaos run: its wall clock is off, as a machine's without a time server is.
const offset = Number(process.env.CLEW_CHAOS_CLOCK_MS ?? 0)
const RealDate = Date
globalThis.Date = class extends RealDate {
  constructor(...args) {
    if (args.length === 0) super(RealDate.now() + offset)
    else super(...args)
  }

  static now() {
    return RealDate.now() + offset
  }
}
