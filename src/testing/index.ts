export { linkedSockets, type LinkedSocket } from './linked-sockets.ts'
export { ManualClock } from './manual-clock.ts'
export { MemoryFiles, SimulatedCrash } from './memory-files.ts'
export { MemoryNetwork } from './memory-network.ts'
export { ScriptedProcesses } from './scripted-processes.ts'
export { SeededIds, seededRandom } from './seeded-ids.ts'
export type { ContractRunner } from './contracts/runner.ts'
export { describeModelProvider, type ProviderUnderTest } from './contracts/provider.ts'
export { describeSockets, type SocketPair } from './contracts/sockets.ts'
export { describeTranscriptStore, type StoreUnderTest } from './contracts/transcript-store.ts'
export type { Script, ScriptedReply } from '../simulator/provider/script.ts'
export type { SeenRequest } from '../simulator/provider/seen-request.ts'
export {
  createProviderSimulator,
  type ProviderSimulator,
  type SimulatorOptions,
} from '../simulator/provider/simulator.ts'
export {
  createXiaoyiSimulator,
  type XiaoyiSimulator,
  type XiaoyiSimulatorOptions,
} from '../simulator/xiaoyi/simulator.ts'
