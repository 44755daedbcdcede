// An agent of one's own behind XiaoYi phones, without the gateway.
// Try it: clew simulate xiaoyi, then node examples/xiaoyi/client.mjs with the keys it prints.
import { XiaoyiClient } from 'clew/xiaoyi'

const { XIAOYI_AK: ak, XIAOYI_SK: sk, XIAOYI_AGENT: agentId, XIAOYI_URL: wsUrl1 } = process.env
const client = new XiaoyiClient({ ak, sk, agentId, ...(wsUrl1 === undefined ? {} : { wsUrl1 }) })
const said = new Map()

client.on('connected', ({ link }) => console.log(`link ${link} is up`))
client.on('disconnected', ({ link, reason }) => console.log(`link ${link} is down: ${reason}`))
client.on('error', ({ reason }) => console.log(`trouble: ${reason}`))

client.on('message', (message) => {
  const count = (said.get(message.sessionId) ?? 0) + 1
  said.set(message.sessionId, count)
  client.sendStatusUpdate(message, 'working')
  client.sendResponse(message, 'You said: ', { final: false })
  client.sendResponse(message, `You said: ${message.text} (message ${count})`)
})

// The effect first, then the answer.
client.on('clear', ({ id, sessionId }) => {
  said.delete(sessionId)
  client.sendClearContextResponse(id, sessionId)
})
client.on('cancel', ({ id, sessionId }) => client.sendTasksCancelResponse(id, sessionId))

await client.connect()
process.once('SIGTERM', () => {
  console.log(JSON.stringify(client.statistics()))
  void client.disconnect()
})
