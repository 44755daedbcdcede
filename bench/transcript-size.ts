import { conversation } from './lib/conversation.ts'

/**
 * How large a transcript gets beside its text: questions of 70 and answers of 200 characters, with the record of each
 * request as the turn stores it. Counts, no times.
 */
let [n, text, bytes, records, wholes] = [0, 0, 0, 0, 0]
for (const turn of conversation(2_000, 'as now')) {
  n++
  text += turn.text
  bytes += turn.lines.join('').length
  records += turn.record
  if (turn.isWhole) wholes++
  if ([100, 500, 1_000, 2_000].includes(n))
    console.log(
      `${2 * n} messages: ${(bytes / 1e6).toFixed(2)} MB, ${Math.round(bytes / n)} bytes per turn, ${(bytes / text).toFixed(1)} × the text · request records ${Math.round(records / n)} bytes per turn, ${wholes} of ${n} whole`,
    )
}
