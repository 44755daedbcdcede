import { conversation, LONG_TURNS, SHORT_TURNS, type Turns } from './lib/conversation.ts'

/**
 * How large a transcript gets beside its text, for short and for long turns, with the record of each request as the turn
 * stores it: while the model sees everything, where its window is full, and with a limit of turns. It holds at every
 * length from 200 messages on; before, there is no length to speak of. Counts, no times.
 */
function measure(name: string, turns: Turns, limit: number): void {
  const { question, answer, historyLimit } = turns
  const sees = historyLimit === 0 ? 'all that fits' : `${historyLimit} turns`
  console.log(`${name}: questions of ${question} and answers of ${answer} characters, the model sees ${sees}`)
  let [n, text, bytes, records, wholes, worst] = [0, 0, 0, 0, 0, 0]
  for (const turn of conversation(2_000, 'as now', turns)) {
    n++
    text += turn.text
    bytes += turn.lines.join('').length
    records += turn.record
    if (turn.isWhole) wholes++
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

measure('short turns', SHORT_TURNS, 6)
measure('short turns', { ...SHORT_TURNS, historyLimit: 50 }, 6)
measure('long turns', LONG_TURNS, 2)
