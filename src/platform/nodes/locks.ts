/** Classes of the advisory locks that a node's session holds, beside the object that each names. */
export const PRESENCE_LOCK = 1_684_370_001
export const LEADER_LOCK = 1_684_370_002
