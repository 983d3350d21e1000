"""What a run is to come to where that is more than words: types, and values that fit them."""

from harness_actors.outputs.output_type import OutputCodeError as OutputCodeError
from harness_actors.outputs.output_type import OutputType as OutputType
from harness_actors.outputs.reading import json_in as json_in
from harness_actors.outputs.reading import value_of as value_of
