/** Who the simulated service expects. */
export const AGENT = { ak: 'ak', sk: 'sk', agentId: 'agent-1' }
