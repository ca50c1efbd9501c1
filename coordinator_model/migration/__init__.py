"""Classic to consumer protocol and back: phases and the evidence for them.

Reading order: phases first; upgrade_blockers, downgrade_check, leftover_records, classic_protocol_members.
May import: records, kinds, state, groups.
"""
