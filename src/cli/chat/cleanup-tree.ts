/** The numbers of a cleanup as the seed shows them: five lines under a title. */
export function cleanupTree(data: Readonly<Record<string, unknown>>): string {
  const number = (name: string): string => `${Number(data[name] ?? 0)}`
  const estimated = data['estimated'] === true ? ' (estimated)' : ''
  return [
    '● Context cleanup completed',
    `├── 🧹 Cleaned ${number('cleaned_messages')} messages`,
    `├── 📝 ${number('remaining_messages')} messages remaining`,
    `├── 🔥 Saved ${number('tokens_saved')} tokens${estimated}`,
    `├── 📊 ${number('tokens_remaining')} tokens remaining`,
    '└── 📉 Context optimized for better performance',
  ].join('\n')
}
