"""What a roll or its rehearsal cost: measured from the log or from events, as text, Markdown and HTML.

Reading order: measure, rolls, rolled, forms.
May import: base, recording.
"""
