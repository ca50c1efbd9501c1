"""What can be configured, and how it is read.

Reading order: section (how an option is declared), sections, kafka_sections, output_sections, view_sections (every
option), loading (file, environment, flags), reference (writes conf/reference.yaml), schema.
May import: base; libraries annotated_types, pydantic, yaml.
"""
