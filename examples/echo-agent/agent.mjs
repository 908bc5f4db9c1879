import { FakeListChatModel } from '@langchain/core/utils/testing'
import { MessagesAnnotation, StateGraph } from '@langchain/langgraph'

/** Change it, push, and the answer tells which revision serves. */
export const VERSION = '1'

const text = (message) => (typeof message?.content === 'string' ? message.content : JSON.stringify(message?.content ?? ''))

/** Answers with the last message. The model is a fake one that streams its given answer letter by letter. */
async function echo(state) {
  const model = new FakeListChatModel({ responses: [`echo ${VERSION}: ${text(state.messages.at(-1))}`], sleep: 2 })
  return { messages: [await model.invoke(state.messages)] }
}

export const graph = new StateGraph(MessagesAnnotation)
  .addNode('echo', echo)
  .addEdge('__start__', 'echo')
  .addEdge('echo', '__end__')
  .compile()
