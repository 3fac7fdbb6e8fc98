"""The prediction service: a saved field behind the Open Inference Protocol, with trust in every answer."""
