import Anthropic from '@anthropic-ai/sdk'
import { GoogleGenAI } from '@google/genai'
import { Mistral } from '@mistralai/mistralai'
import OpenAI from 'openai'

/** Reads one streamed answer with an official client and returns the text of it. */
export type ReadAnswer = (url: string) => Promise<string>

/** The official clients as their documentation shows them, for the benchmark. */
export const SDK_READERS: Readonly<Record<string, Readonly<Record<string, ReadAnswer>>>> = {
  anthropic: {
    '@anthropic-ai/sdk events': async (url) => {
      const client = new Anthropic({ baseURL: url, apiKey: 'k', maxRetries: 0 })
      const stream = await client.messages.create({
        model: 'm',
        max_tokens: 9,
        stream: true,
        messages: [{ role: 'user', content: 'x' }],
      })
      let text = ''
      for await (const event of stream) {
        if (event.type === 'content_block_delta' && event.delta.type === 'text_delta') text += event.delta.text
      }
      return text
    },
    '@anthropic-ai/sdk .stream()': async (url) => {
      const client = new Anthropic({ baseURL: url, apiKey: 'k', maxRetries: 0 })
      const stream = client.messages.stream({ model: 'm', max_tokens: 9, messages: [{ role: 'user', content: 'x' }] })
      return stream.finalText()
    },
  },
  completions: {
    'openai chat': async (url) => {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0 })
      const stream = await client.chat.completions.create({
        model: 'm',
        stream: true,
        messages: [{ role: 'user', content: 'x' }],
      })
      let text = ''
      for await (const chunk of stream) text += chunk.choices[0]?.delta.content ?? ''
      return text
    },
  },
  responses: {
    'openai responses': async (url) => {
      const client = new OpenAI({ baseURL: `${url}/v1`, apiKey: 'k', maxRetries: 0 })
      const stream = await client.responses.create({ model: 'm', stream: true, input: 'x' })
      let text = ''
      for await (const event of stream) if (event.type === 'response.output_text.delta') text += event.delta
      return text
    },
  },
  google: {
    '@google/genai': async (url) => {
      const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: url } })
      const stream = await client.models.generateContentStream({ model: 'm', contents: 'x' })
      let text = ''
      for await (const chunk of stream) text += chunk.candidates?.[0]?.content?.parts?.[0]?.text ?? ''
      return text
    },
  },
  mistral: {
    '@mistralai/mistralai': async (url) => {
      const client = new Mistral({ apiKey: 'k', serverURL: url, retryConfig: { strategy: 'none' } })
      const stream = await client.chat.stream({ model: 'm', messages: [{ role: 'user', content: 'x' }] })
      let text = ''
      for await (const { data } of stream) {
        const content = data.choices[0]?.delta.content
        if (typeof content === 'string') text += content
      }
      return text
    },
  },
}
