import { conversation, LONG_TURN, SHORT_TURN, type TurnLength } from './lib/conversation.ts'

/**
 * How large a transcript gets beside its text, for short and for long turns, with the record of each request as the turn
 * stores it. At every length it holds to its limit. Counts, no times.
 */
function measure(name: string, length: TurnLength, limit: number): void {
  console.log(`${name}: questions of ${length.question} and answers of ${length.answer} characters`)
  let [n, text, bytes, records, wholes, worst] = [0, 0, 0, 0, 0, 0]
  for (const turn of conversation(2_000, 'as now', length)) {
    n++
    text += turn.text
    bytes += turn.lines.join('').length
    records += turn.record
    if (turn.isWhole) wholes++
    // The first turns have a whole record, and no length to speak of.
    if (n >= 100) worst = Math.max(worst, bytes / text)
    if ([100, 500, 1_000, 2_000].includes(n))
      console.log(
        `${2 * n} messages: ${(bytes / 1e6).toFixed(2)} MB, ${Math.round(bytes / n)} bytes per turn, ${(bytes / text).toFixed(2)} × the text · request records ${Math.round(records / n)} bytes per turn, ${wholes} of ${n} whole`,
      )
  }
  console.log(
    `at most ${worst.toFixed(2)} × from 200 messages on (limit ${limit}: ${worst <= limit ? 'held' : 'not held'})`,
  )
}

measure('short turns', SHORT_TURN, 6)
measure('long turns', LONG_TURN, 2)
