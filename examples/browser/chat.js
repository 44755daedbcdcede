// The whole client side of a chat page; index.html shows how to load it.
import { ClewClient } from 'clew/client'

/** Sends what is typed into `form` and shows the conversation in `log`, word by word as the answer comes. */
export function startChat({ url, form, log, line, uid = 'browser' }) {
  const client = new ClewClient({ url, uid })
  const show = (who) => {
    const item = line()
    item.className = who
    log.append(item)
    return item
  }
  form.addEventListener('submit', async (event) => {
    event.preventDefault()
    const input = form.elements.text
    const words = input.value
    input.value = ''
    show('user').textContent = words
    const answer = show('assistant')
    try {
      for await (const part of client.ask(words, { session: 'page' }))
        if (part.type === 'progress' || part.type === 'complete') answer.textContent = part.text
    } catch (error) {
      answer.textContent = `${error.code ?? 'error'}: ${error.message}`
    }
  })
  return client
}
